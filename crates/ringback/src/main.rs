//! The `ringback` command.

fn main() {}
