//! Evaluations of results and of production calls: their material, their records, and deadlines.

pub(super) mod call_logs;
pub(super) mod follow_up;
pub(super) mod inputs;
pub(super) mod material;
pub(super) mod overdue;
pub(super) mod records;
pub(super) mod review;
pub(super) mod yielding;
