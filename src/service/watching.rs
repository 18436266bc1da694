//! Monitors, alerts, issues, notifications and webhooks.

pub(super) mod alerts;
pub(super) mod finished;
pub(super) mod issues;
pub(super) mod monitors;
pub(super) mod notify;
pub(super) mod webhooks;
