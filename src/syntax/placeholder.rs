//! Placeholders in texts that users write: `{{name}}` stands for a value.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most bytes that values may bring into all the texts that share a [`Budget`].
const ROOM_BYTES: usize = 1 << 20;

/// Budget of bytes that values may still bring into texts. It bounds memory: many placeholders can repeat one long
/// value.
#[derive(Debug)]
pub struct Budget {
    left_bytes: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { left_bytes: AtomicUsize::new(ROOM_BYTES) }
    }
}

impl Budget {
    /// Returns the beginning of `value` that fits the budget, and deducts it.
    fn take<'v>(&self, value: &'v str) -> &'v str {
        let left = self.left_bytes.load(Ordering::Relaxed);
        let taken = &value[..value.floor_char_boundary(left)];
        // A value that was cut has used up the budget, also where a character did not fit.
        let left = if taken.len() < value.len() { 0 } else { left - taken.len() };
        self.left_bytes.store(left, Ordering::Relaxed);
        taken
    }

    fn is_used_up(&self) -> bool {
        self.left_bytes.load(Ordering::Relaxed) == 0
    }
}

/// Returns `text` with each `{{name}}` replaced by its value.
///
/// A name without a value stays as written, and so do all once the budget is used up. Of more than two open braces the
/// last two count. Values are not read again: placeholders in them stay.
pub fn fill<'v>(text: &str, budget: &Budget, value: impl Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while !budget.is_used_up()
        && let Some(end) = rest.find("}}")
    {
        let found = rest[..end].rfind("{{").and_then(|start| Some((start, value(&rest[start + 2..end])?)));
        let read = match found {
            Some((start, value)) => {
                out.push_str(&rest[..start]);
                out.push_str(budget.take(&value));
                end + 2
            }
            None => {
                out.push_str(&rest[..=end]);
                end + 1
            }
        };
        rest = &rest[read..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let value = |name: &str| match name {
            "name" => Some(Cow::from("Ann")),
            " name " => Some(Cow::from("with blanks")),
            "a}b" => Some(Cow::from("one brace")),
            "nested" => Some(Cow::from("{{name}}")),
            "" => Some(Cow::from("nothing")),
            _ => None,
        };
        assert_eq!(fill(text, &Budget::default(), value), expect, "{text}");
    }

    #[test]
    fn placeholders_are_replaced_once() {
        for (text, expect) in [
            ("", ""),
            ("I am {{name}}, {{name}}.", "I am Ann, Ann."),
            ("{{ name }} {{name }}", "with blanks {{name }}"),
            ("{{Name}} {{x}}{{name}}", "{{Name}} {{x}}Ann"),
            ("{{nested}}", "{{name}}"),
            ("{{{name}}}", "{Ann}"),
            ("{{{{name}}}}", "{{Ann}}"),
            ("{{x {{name}} }}", "{{x Ann }}"),
            ("{{name} {{name}}", "{{name} Ann"),
            ("{{a}b}} {{}} ü{{name}}ü", "one brace nothing üAnnü"),
            ("}}{{name}} {{name", "}}Ann {{name"),
            ("}}}}{{", "}}}}{{"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn a_text_of_braces_is_read_in_one_pass() {
        let open = "{".repeat(4 << 20);
        for text in
            [open.clone(), format!("{open}}}}}"), format!("{open}{}", "}".repeat(4 << 20)), "{{x}}".repeat(1 << 20)]
        {
            assert!(fill(&text, &Budget::default(), |_| None) == text);
        }
    }

    #[test]
    fn values_bring_in_only_so_much() {
        let (budget, value) = (Budget::default(), "ü".repeat(400_000));
        let long = |name: &str| (name == "long").then(|| Cow::from(value.as_str()));
        let text = "{{long}}{{long}}{{long}} and {{long}}";
        let whole = fill(text, &budget, long);
        assert_eq!(whole.len(), ROOM_BYTES + "{{long}} and {{long}}".len());
        assert!(whole.ends_with("ü{{long}} and {{long}}"), "the text itself stays");
        assert_eq!(fill("{{long}}", &budget, long), "{{long}}", "texts share the budget");
        let odd = Budget::default();
        assert_eq!(odd.take("a"), "a");
        assert_eq!(odd.take(&"ü".repeat(ROOM_BYTES)).len(), ROOM_BYTES - 2, "cut between characters");
        assert_eq!(odd.take("a"), "");
    }
}
