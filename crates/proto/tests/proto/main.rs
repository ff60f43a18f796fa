//! What is on the wire, tool by tool: rules for every row of the table, committed vectors, and bytes from
//! strangers. One program, because each would compile all tools anew.

mod fuzz;
mod golden;
mod samples;
mod table;
