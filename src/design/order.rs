//! The order of trials: a frozen, versioned algorithm, so that a stored seed means the same order for ever.
