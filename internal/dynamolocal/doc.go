// Package dynamolocal runs DynamoDB Local for tests.
//
// DynamoDB Local is Amazon's single-process version of DynamoDB, a Java program. No other engine
// that runs without an AWS account is as similar to DynamoDB. The tests compare Ordergraph's
// embedded engine with it.
//
// # Installation
//
// Maven downloads software.amazon.dynamodb:DynamoDBLocal (version [DynamoDBLocalVersion]) and its
// dependencies once, to the user's cache directory ([CacheDir]). The embedded file pom.xml lists
// the dependencies. DynamoDB Local stores its data in SQLite, which is a native library. Maven
// copies this library to the directory of the jars, for Linux, Windows and macOS on x86 processors.
// On other processors, DynamoDB Local does not start, and the error contains the log of the JVM.
//
// # Versions
//
// Version 3.1.0 is the newest version whose dependencies are all in the public registries. Version
// 3.3.1 requires artifacts of the AWS SDK for Java that are not public.
//
// # Sharing
//
// A new JVM needs seconds of CPU time before it processes requests fast. So all test processes of a
// user share one instance ([Shared]). A separate process, the keeper, ends the JVM when no test
// process has used it for half a minute: see keeper_unix.go. Each process has its own access key,
// and DynamoDB Local has separate tables for each access key.
//
// Tests in other languages use an instance of their own: see the command "with".
//
// # Termination
//
// A JVM uses some hundred megabytes of memory, so it must end with the tests. A test process may
// end without running deferred calls, because of a panic in another goroutine, -timeout or kill -9.
// So the operating system ends the JVM together with the process that started it: see
// guard_linux.go and guard_shell.go. Only the log of the JVM remains, as a small file in the
// temporary directory. The operating system also releases the lock that marks the process as a user
// of the instance.
//
// # Network
//
// DynamoDB Local listens on all network interfaces, and no option changes this. It contains only
// test data, accepts any credentials, and ends soon after the tests. Its telemetry is disabled.
package dynamolocal
