//! Runs and their results: queueing, schedules, text conversations, lists, exports and evidence.

pub(super) mod always_on;
pub(super) mod evidence;
pub(super) mod export;
pub(super) mod incoming;
pub(super) mod ladder;
pub(super) mod page_file;
pub(super) mod queueing;
mod recovery;
pub(super) mod results;
pub(super) mod retention;
pub(super) mod run_list;
pub(super) mod scheduler;
pub(super) mod schedules;
pub(super) mod send_text;
pub(super) mod sms_runs;
pub(super) mod summary;
pub(super) mod text_runs;
pub(super) mod turn_list;
