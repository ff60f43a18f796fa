//! The client against sockets of the library it is built on.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod reconnects;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod support;
