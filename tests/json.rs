//! Documents as tests write them.

use serde_json::Value;

/// Returns the object `base` with the fields of `more` over its own.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("no object: {more}") };
    base.as_object_mut().expect("an object").extend(more);
    base
}
