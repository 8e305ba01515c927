//! Files that people start from, and the library itself.

mod examples;
mod library;
mod manifests;
