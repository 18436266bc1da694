//! Behaviour of the whole library, one file a subject.

mod caller;
mod calls;
mod garbage;
mod session;
mod torture;
