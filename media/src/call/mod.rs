//! The Call: where transport, media and mind meet.

mod event;
mod io;
mod spec;

pub use event::*;
pub use io::*;
pub use spec::*;
