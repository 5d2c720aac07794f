// Package dynamolocal runs DynamoDB Local for tests.
//
// DynamoDB Local is a Java program from Amazon that implements DynamoDB in a single process. The
// tests compare Ordergraph's embedded engine with it, because no other local engine is as similar
// to DynamoDB.
//
// # Installation
//
// Maven downloads DynamoDB Local and its dependencies once, to the directory [CacheDir]. The
// embedded file pom.xml contains the name and the version of the artifact:
// software.amazon.dynamodb:DynamoDBLocal, version [DynamoDBLocalVersion].
//
// DynamoDB Local stores its data in SQLite, which is a native library. Maven also downloads this
// library, for Linux, Windows and macOS on x86 processors. On other processors, DynamoDB Local does
// not start. The error of [Start] then contains the log of the JVM.
//
// # Versions
//
// Version 3.1.0 is the newest version whose dependencies are all in public Maven repositories.
// Version 3.3.1 needs artifacts of the AWS SDK for Java that are not public.
//
// # Sharing
//
// A new JVM needs several seconds of CPU time until it processes requests fast. So all test
// processes of a user share one instance ([Shared]). A separate process, the keeper, runs this
// instance. When no test process has used the instance for 30 seconds, the keeper stops it (see
// keeper_unix.go).
//
// Each test process has its own access key. DynamoDB Local keeps separate tables for each access
// key, so test processes do not see the tables of each other.
//
// Tests that are not written in Go start their own instance with the command in the directory
// "with".
//
// # Termination
//
// A JVM uses hundreds of megabytes of memory, so it must not run longer than the tests. A test
// process can end without running its deferred calls: after a panic in another goroutine, after a
// timeout of go test, or after kill -9. So the JVM does not depend on these calls. On Linux, the
// kernel kills the JVM when the process that started it ends (see guard_linux.go). On other
// systems, a shell script does this (see guard_shell.go). Only the log of the JVM remains, as a
// small file in the temporary directory.
//
// A test process holds a file lock while it uses the shared instance. When the test process ends,
// the operating system releases this lock. The keeper stops the instance only if no test process
// holds the lock.
//
// # Network
//
// DynamoDB Local listens on all network interfaces, and no option changes this. It accepts any
// credentials. This is acceptable, because it contains only test data and ends soon after the
// tests. Its telemetry is disabled.
package dynamolocal
