//! `[limits.organizations.NAME]`: limits of one organization, by its name or id.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Source;
use super::trunks::{DIAL_FIELDS, DialLimits};

/// Section of the limits of organizations.
const SECTION: &str = "limits.organizations";
/// Fields besides those of dialled numbers.
const FIELDS: [&str; 6] =
    ["usage_minutes_per_month", "calls_at_once", "phone_numbers", "results_days", "recordings_days", "upload_mb"];

/// Limits of an organization. A limit that is not given does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrganizationLimits {
    /// Limits of the numbers that it dials.
    #[serde(flatten)]
    pub dial: DialLimits,
    /// Minutes of conversation that it may use in a month (UTC).
    pub usage_minutes_per_month: Option<f64>,
    /// Most conversations at the same time, on all channels.
    pub calls_at_once: Option<u32>,
    /// Most telephone numbers that it may register.
    pub phone_numbers: Option<u32>,
    /// Days that its results are kept; 0: without limit.
    pub results_days: Option<u32>,
    /// Days that its recordings are kept; 0: without limit.
    pub recordings_days: Option<u32>,
    /// Largest file that it may upload, in megabytes (10^6 bytes).
    pub upload_mb: Option<u32>,
}

/// Reads the limits of organizations.
pub(super) fn read_organizations(from: &mut Source) -> BTreeMap<String, OrganizationLimits> {
    let names = from.names_below(SECTION, &[&DIAL_FIELDS[..], &FIELDS[..]].concat());
    names.into_iter().map(|name| (name.clone(), read_limits(&format!("{SECTION}.{name}"), from))).collect()
}

fn read_limits(section: &str, from: &mut Source) -> OrganizationLimits {
    let mut limits = OrganizationLimits { dial: DialLimits::from_settings(section, from), ..Default::default() };
    let key = |field: &str| format!("{section}.{field}");
    from.maybe_number(&key("usage_minutes_per_month"), 0.0..=1e9, &mut limits.usage_minutes_per_month);
    from.maybe_whole(&key("calls_at_once"), 0..=1_000_000, &mut limits.calls_at_once);
    from.maybe_whole(&key("phone_numbers"), 0..=1_000_000, &mut limits.phone_numbers);
    from.maybe_whole(&key("results_days"), 0..=36_500, &mut limits.results_days);
    from.maybe_whole(&key("recordings_days"), 0..=36_500, &mut limits.recordings_days);
    from.maybe_whole(&key("upload_mb"), 0..=1_000_000, &mut limits.upload_mb);
    limits
}
