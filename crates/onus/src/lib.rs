//! Tower layers that stop retry storms by error ownership.
