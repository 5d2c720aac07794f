// Package dynamolocal runs Amazon's DynamoDB Local for tests.
//
// DynamoDB Local is Amazon's own single-process version of DynamoDB, a Java program. It is the
// nearest thing to the real service that runs without an account, and the yardstick Ordergraph's
// own engine is measured by.
//
// # Where it comes from
//
// Maven fetches software.amazon.dynamodb:DynamoDBLocal (version [Version]) and what it depends on,
// once, into the user's cache directory ([CacheDir]); the list is pom.xml, which is embedded. The
// SQLite library it keeps its data in is native code: Maven copies one for Linux and Windows (x86)
// and macOS (x86) next to the jars, and the JVM is told to look there. On a processor that has
// none, the start fails and the error shows the JVM's own words.
//
// # Versions
//
// 3.1.0 is pinned because it is the newest whose dependencies all resolve from the registries we
// build against: 3.3.1 wants AWS SDK for Java artifacts that are not published there.
//
// # Who shares it
//
// A JVM takes seconds of CPU until its requests are fast, so all test processes of a user share one
// ([Shared]). A separate process, the keeper, ends the JVM when it has had no users for half a
// minute: see keeper_unix.go. Each process has its own access key, and DynamoDB Local keeps the
// tables of different access keys apart.
//
// Tests in other languages than Go have an instance of their own: see the command with.
//
// # How it ends
//
// A forgotten JVM of some hundred megabytes per test run is a nuisance that adds up, and a process
// may end without running any of its own code (a panic in another goroutine, a -timeout, kill -9).
// So the JVM is tied to the process that starts it by the operating system and not by a deferred
// call: see guard_linux.go and guard_shell.go. What such an end does leave behind is the JVM's log,
// a small file in the temporary directory. A process that ends also releases its lock as a user.
//
// # What it opens
//
// DynamoDB Local listens on every interface and has no option for a single one. It holds nothing
// but what tests put there, accepts any credentials, and is gone soon after the tests. Telemetry
// is switched off.
package dynamolocal
