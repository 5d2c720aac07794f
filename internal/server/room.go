package server

// free is the number of bytes up to which a body or an answer is not counted. Larger ones have a quota of memory that requests hold while
// they wait for their clients to send or to read. Such a wait takes no place from requests that are worked on, so that slow clients do
// not stop fast ones; but without a bound, thousands of them would each hold the largest body or answer that there can be.
const free = 16 << 10
