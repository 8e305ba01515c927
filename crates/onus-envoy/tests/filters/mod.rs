//! Single streams through single filters.
