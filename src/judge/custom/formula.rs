//! Arithmetic over metrics: `+ - * / ( )`, `min max abs round`, numbers, names of metrics (custom ones in backticks),
//! and at most one comparison. Read and computed in one pass.

/// Longest expression in bytes.
const BYTES_MAX: usize = 4000;

/// Brackets inside each other.
const DEPTH_MAX: usize = 50;

/// Value of an expression.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Number(f64),
    Truth(bool),
}

/// Reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A metric of this name has no value.
    Missing(String),
    /// The expression or its numbers are wrong; the text says how.
    Wrong(String),
}

/// Returns the names in backticks.
pub(super) fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Computes `text`; `number_of` gives the number of a name, told whether it stood in backticks.
pub(super) fn evaluate(text: &str, number_of: &dyn Fn(&str, bool) -> Option<f64>) -> Result<Outcome, Trouble> {
    if text.len() > BYTES_MAX {
        return Err(Trouble::Wrong(format!("the expression has more than {BYTES_MAX} bytes")));
    }
    let mut reader = Reader { text, at: 0, depth: 0, number_of, missing: None, by_zero: false };
    let outcome = reader.comparison().map_err(Trouble::Wrong)?;
    if let Some(rest) = reader.peek() {
        return Err(Trouble::Wrong(format!("the expression has {rest} at {} where nothing is due", reader.at)));
    }
    if let Some(name) = reader.missing {
        return Err(Trouble::Missing(name));
    }
    match outcome {
        _ if reader.by_zero => Err(Trouble::Wrong("division by 0".into())),
        Outcome::Number(number) if !number.is_finite() => Err(Trouble::Wrong("the result is no finite number".into())),
        outcome => Ok(outcome),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    number_of: &'t dyn Fn(&str, bool) -> Option<f64>,
    missing: Option<String>,
    by_zero: bool,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns the next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: &str) -> bool {
        let found = self.peek().is_some() && self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(format!("the expression needs {wanted} at {}", self.at)) }
    }

    /// Takes and returns the characters that `fits` accepts.
    fn run(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn comparison(&mut self) -> Result<Outcome, String> {
        let left = self.sum()?;
        let operator = ["<=", ">=", "==", "<", ">"].into_iter().find(|operator| self.take(operator));
        let Some(operator) = operator else { return Ok(Outcome::Number(left)) };
        let right = self.sum()?;
        Ok(Outcome::Truth(match operator {
            "<=" => left <= right,
            ">=" => left >= right,
            "==" => left == right,
            "<" => left < right,
            _ => left > right,
        }))
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut sum = self.product()?;
        loop {
            if self.take("+") {
                sum += self.product()?;
            } else if self.take("-") {
                sum -= self.product()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut product = self.factor()?;
        loop {
            if self.take("*") {
                product *= self.factor()?;
            } else if self.take("/") {
                let divisor = self.factor()?;
                self.by_zero |= divisor == 0.0;
                product /= divisor;
            } else {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("the expression has more than {DEPTH_MAX} brackets inside each other"));
        }
        let value = match self.peek() {
            Some('-') => {
                self.at += 1;
                self.factor().map(|value| -value)
            }
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                self.expect(")")?;
                Ok(value)
            }
            Some('`') => self.quoted_name(),
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let at = self.at;
                let digits = self.run(|c| c.is_ascii_digit() || c == '.');
                digits.parse().map_err(|_| format!("the expression has no number at {at}: {digits}"))
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name(),
            Some(c) => Err(format!("the expression has {c} at {} where a value is due", self.at)),
            None => Err("the expression ends where a value is due".into()),
        };
        self.depth -= 1;
        value
    }

    fn quoted_name(&mut self) -> Result<f64, String> {
        self.expect("`")?;
        let name = self.run(|c| c != '`');
        self.expect("`")?;
        Ok(self.number(name, true))
    }

    fn name(&mut self) -> Result<f64, String> {
        let name = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        if !self.take("(") {
            return Ok(self.number(name, false));
        }
        let mut values = vec![self.sum()?];
        while self.take(",") {
            values.push(self.sum()?);
        }
        self.expect(")")?;
        match (name, &values[..]) {
            ("abs", [value]) => Ok(value.abs()),
            ("round", [value]) => Ok(value.round()),
            ("min", values) => Ok(values.iter().copied().fold(f64::INFINITY, f64::min)),
            ("max", values) => Ok(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            ("abs" | "round", _) => Err(format!("{name} takes one value")),
            _ => Err(format!("{name} is no function")),
        }
    }

    /// Returns the number of a name. A missing one counts as 1 while the rest is read.
    fn number(&mut self, name: &str, quoted: bool) -> f64 {
        let number = (self.number_of)(name, quoted);
        if number.is_none() && self.missing.is_none() {
            self.missing = Some(name.to_owned());
        }
        number.unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Outcome, Trouble> {
        evaluate(text, &|name, quoted| match (name, quoted) {
            ("num_turns", _) => Some(4.0),
            ("zero", _) => Some(0.0),
            ("Was it polite?", true) => Some(1.0),
            _ => None,
        })
    }

    #[test]
    fn expressions_are_computed() {
        for (text, expect) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 / 2 / 2", 2.0),
            ("1 - 2 - 3", -4.0),
            ("--2", 2.0),
            ("-(1.5) * .5", -0.75),
            ("min(3, 1 + 1, 5) + max(1,2)", 4.0),
            ("abs(-2.5)+round(2.5)", 5.5),
            ("num_turns / 2 + `Was it polite?`", 3.0),
            ("`num_turns`", 4.0),
        ] {
            assert_eq!(of(text), Ok(Outcome::Number(expect)), "{text}");
        }
        for (text, expect) in
            [("num_turns <= 4", true), ("num_turns<4", false), ("2 == 1+1", true), ("1 > 2", false), ("2 >= 2", true)]
        {
            assert_eq!(of(text), Ok(Outcome::Truth(expect)), "{text}");
        }
    }

    #[test]
    fn trouble_is_named() {
        let wrong = |why: &str| Err(Trouble::Wrong(why.to_owned()));
        for (text, expect) in [
            ("1 / zero", wrong("division by 0")),
            ("1 / (num_turns - 4) > 2", wrong("division by 0")),
            ("unheard + 1 / zero", Err(Trouble::Missing("unheard".into()))),
            ("`a b` > 1", Err(Trouble::Missing("a b".into()))),
            ("", wrong("the expression ends where a value is due")),
            ("1 +", wrong("the expression ends where a value is due")),
            ("1 2", wrong("the expression has 2 at 2 where nothing is due")),
            ("1 < 2 < 3", wrong("the expression has < at 6 where nothing is due")),
            ("(1", wrong("the expression needs ) at 2")),
            ("`a", wrong("the expression needs ` at 2")),
            ("1.2.3", wrong("the expression has no number at 0: 1.2.3")),
            ("sin(1)", wrong("sin is no function")),
            ("abs(1, 2)", wrong("abs takes one value")),
            ("é", wrong("the expression has é at 0 where a value is due")),
        ] {
            assert_eq!(of(text), expect, "{text}");
        }
        assert_eq!(of(&"(".repeat(60)), wrong("the expression has more than 50 brackets inside each other"));
        assert_eq!(of(&"1".repeat(4001)), wrong("the expression has more than 4000 bytes"));
        assert_eq!(of(&"9".repeat(400)), wrong("the result is no finite number"));
    }

    #[test]
    fn names_in_backticks_are_listed() {
        assert_eq!(quoted("`a b` + c * `d`"), ["a b", "d"]);
        assert_eq!(quoted("1"), Vec::<&str>::new());
    }
}
