//! One module a subcommand.

pub(crate) mod stat;
