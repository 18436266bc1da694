//! Operation ids: the names that generated clients give their functions, as a person would write them. They are listed
//! by method and path in `operation_ids.txt`; a test finds a route that the list lacks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::endpoint::Endpoint;

static IDS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("operation_ids.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).collect()
});

/// Returns the operation id of a route; one that is not listed has an id of the words of its path.
pub(super) fn operation_id(endpoint: &Endpoint) -> String {
    let derived = || {
        let name = endpoint.path.trim_matches('/').replace(['/', '-', '.'], "_").replace(['{', '}'], "");
        format!("{}_{name}", endpoint.method.as_str().to_lowercase())
    };
    IDS.get(endpoint.name().as_str()).map_or_else(derived, |id| (*id).to_owned())
}
