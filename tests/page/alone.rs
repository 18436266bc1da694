//! Times of the page, on a machine that does nothing else.

mod live;
