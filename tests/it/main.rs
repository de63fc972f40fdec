//! The program as its users meet it: the real binary over real pipes.

mod clients;
mod examples;
mod readme;
mod wire_fields;
