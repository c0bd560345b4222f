//! A syntax tree becomes a checked experiment: names, units, defaults, treatments. Pushes every fault of a file;
//! touches no host.
