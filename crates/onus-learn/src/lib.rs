//! Edge classes from counts: which dependencies can take a caller down.
