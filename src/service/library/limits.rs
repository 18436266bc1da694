//! Limits of organizations: those of the settings win over those that an operator has stored, one by one.

use ringer_base::config::OrganizationLimits;
use ringer_base::error::{Error, Result};
use ringer_model::organization::WorkspaceLimits;
use ringer_store::Session;

use crate::Settings;

/// Bytes of a megabyte.
const MEGABYTE: u64 = 1_000_000;

/// Checks the size of a file against the limit of the session's organization.
pub(crate) async fn check_upload(settings: &Settings, db: &mut Session, bytes: u64) -> Result<()> {
    match upload_limit(settings, db).await? {
        Some(most) if bytes > most => {
            let (size, most) = (bytes.div_ceil(MEGABYTE), most / MEGABYTE);
            Err(Error::Refused(format!("The file has {size} MB, and the workspace's limit is {most} MB")))
        }
        _ => Ok(()),
    }
}

/// Returns the largest file in bytes that the session's organization may upload or have fetched; `None`: no limit.
pub(crate) async fn upload_limit(settings: &Settings, db: &mut Session) -> Result<Option<u64>> {
    Ok(limits_in_force(settings, db).await?.upload_mb.map(|most| u64::from(most) * MEGABYTE))
}

/// Returns the section of the settings for an organization, by its name, else by its id.
pub(crate) fn section_of<'s>(
    settings: &'s Settings,
    name: &str,
    id: &str,
) -> Option<(&'s str, &'s OrganizationLimits)> {
    let sections = &settings.organization_limits;
    let found = sections.get_key_value(name).or_else(|| sections.get_key_value(id));
    found.map(|(section, limits)| (section.as_str(), limits))
}

/// Returns the limits that hold for the session's organization.
///
/// Each is that of its section of the settings, else the stored one, else that of all organizations.
pub(crate) async fn limits_in_force(settings: &Settings, db: &mut Session) -> Result<WorkspaceLimits> {
    let stored = db.stored_limits().await?;
    let section = if settings.organization_limits.is_empty() {
        WorkspaceLimits::default()
    } else {
        let name = db.organization_name().await?.unwrap_or_default();
        section_of(settings, &name, db.organization()).map(|(_, limits)| of_section(limits)).unwrap_or_default()
    };
    let general =
        WorkspaceLimits { usage_minutes_per_month: settings.usage_minutes_per_month, ..WorkspaceLimits::default() };
    Ok(section.or(stored).or(general))
}

fn of_section(limits: &OrganizationLimits) -> WorkspaceLimits {
    WorkspaceLimits {
        usage_minutes_per_month: limits.usage_minutes_per_month,
        calls_at_once: limits.calls_at_once,
        phone_numbers: limits.phone_numbers,
        results_days: limits.results_days,
        recordings_days: limits.recordings_days,
        upload_mb: limits.upload_mb,
    }
}
