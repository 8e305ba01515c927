//! Files that people start from, and the library itself.

mod examples;
mod istio_schemas;
mod library;
mod manifests;
