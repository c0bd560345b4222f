//! Built-in workloads, and parsers that turn a program's output into numbers.
