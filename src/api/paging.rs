//! Query of lists that are read by page.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PageQuery {
    /// Number of the page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub page: i64,
    /// Rows a page, 1 to 200; default 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    pub page_size: i64,
}

fn first() -> i64 {
    1
}

fn fifty() -> i64 {
    50
}
