//! Tests of the client against sockets of its ZeroMQ library.

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
