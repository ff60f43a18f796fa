//! Wire tests, tool by tool: rules for every row of the table, committed vectors, and bytes from
//! untrusted peers. One program, because several would each compile all tools again.

mod fuzz;
mod golden;
mod samples;
mod table;
