//! Resources that users create, read, change and delete, and the rules on their fields.

pub(super) mod agents;
pub(super) mod communities;
pub(super) mod customers;
pub(super) mod field_rules;
pub(super) mod folders;
pub(super) mod human_rules;
pub(super) mod keys;
pub(super) mod labels;
pub(super) mod lists;
pub(super) mod metrics;
pub(super) mod names;
pub(super) mod noises;
pub(super) mod page_key;
pub(super) mod phone_numbers;
pub(super) mod simulations;
pub(super) mod versions;
