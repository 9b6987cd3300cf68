//! The emulated path: capacity, delay, jitter, loss and queue of one direction, as pure state.
//!
//! Reads no clock, does no I/O, starts no thread. [`config`] is what a run description asks for.

pub mod config;
