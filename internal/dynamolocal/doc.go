// Package dynamolocal runs Amazon's DynamoDB Local for tests.
//
// DynamoDB Local is Amazon's single-process version of DynamoDB, a Java program. Of all engines
// that run without an AWS account, it is the closest to DynamoDB. The tests compare Ordergraph's
// own engine with it.
//
// # Installation
//
// Maven fetches software.amazon.dynamodb:DynamoDBLocal (version [Version]) and its dependencies
// once. They are stored in the user's cache directory ([CacheDir]). The dependencies are listed in
// the embedded pom.xml. DynamoDB Local stores its data in SQLite, which is native code. Maven
// copies the library for Linux and Windows (x86) and macOS (x86) next to the jars, and the JVM
// loads it from there. On other processors the start fails, and the error contains the JVM's log.
//
// # Versions
//
// 3.1.0 is the newest version whose dependencies all exist in the public registries. 3.3.1 requires
// AWS SDK for Java artifacts that are not published there.
//
// # Sharing
//
// A JVM needs seconds of CPU time until its requests are fast. So all test processes of a user
// share one instance ([Shared]). A separate process, the keeper, ends the JVM when it has had no
// users for half a minute: see keeper_unix.go. Each process has its own access key, and DynamoDB
// Local separates the tables of different access keys.
//
// Tests in other languages use an instance of their own: see the command `with`.
//
// # Termination
//
// A JVM uses some hundred megabytes, so it must not outlive the tests. A test process may end
// without running deferred calls: a panic in another goroutine, -timeout, kill -9. So the operating
// system ties the JVM to the process that starts it: see guard_linux.go and guard_shell.go. Such an
// end leaves only the JVM's log, a small file in the temporary directory. The operating system also
// releases the lock that registers the process as a user.
//
// # Network
//
// DynamoDB Local listens on all interfaces and has no option for a single one. It contains only
// test data, accepts any credentials, and ends soon after the tests. Telemetry is disabled.
package dynamolocal
