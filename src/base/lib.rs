//! Ground of all parts that run: settings, clock, tasks, errors, and requests to addresses that users give. Knows no
//! calls, no resources and no prompts.

pub mod clock;
pub mod config;
pub mod error;
pub mod fetch;
pub mod guard;
pub mod post;
pub mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;
