//! The search for the likeliest text: the likeliest token at each place, and another try where two are about as likely.
//!
//! The first sounds of a sentence mislead small models: "Yes" becomes "And yes". The second token may lead to a text
//! that is likelier as a whole.

use super::Whisper;
use super::decoder::State;
use super::limits::TextBudget;
use super::math::log_sum_exp;

/// Probability of the likeliest token from which no other is tried.
const SURE: f32 = 0.7;
/// Least probability of another token, as a share of the likeliest one's.
const NEAR: f32 = 0.25;
/// Most other tokens that are tried.
const TRIES: usize = 3;
/// Sum of logarithms below that of the best text at which a try is given up.
const BEHIND: f32 = 2.0;
/// Tokens by which texts of one length may differ. A shorter text has ended early and is not better; a longer one is
/// when its tokens are likelier in the mean.
const ALIKE: usize = 2;

/// A text as the decoder made it.
pub(super) struct Text {
    /// Tokens with their probabilities.
    pub tokens: Vec<(u32, f32)>,
    /// True if the text came to its end within its budget.
    pub ended: bool,
    /// Mean logarithm of the probability of a token, the end among them, in the first text that was made: a choice
    /// among several makes noise look like words.
    pub log_probability: f32,
    /// Attention of each token and, where the text came to its end, of the end.
    pub followed: Vec<Vec<f32>>,
}

/// A text while it grows.
#[derive(Clone)]
struct Growing {
    tokens: Vec<(u32, f32)>,
    sum: f32,
    budget: TextBudget,
}

/// A place at which another token was nearly as likely.
struct Fork {
    /// Text in front of the place.
    before: Growing,
    token: u32,
    logarithm: f32,
    /// Its probability as a share of the likeliest token's.
    share: f32,
}

/// Returns the likeliest text that is found; `None` when `cancelled` became true. `odds` are those of the first token,
/// behind the prompt that `state` holds.
pub(super) fn likeliest(
    model: &Whisper,
    state: &mut State,
    odds: &mut Vec<f32>,
    budget: TextBudget,
    cancelled: &dyn Fn() -> bool,
) -> Option<Text> {
    let prompt = state.count;
    let mut forks = Vec::new();
    let begun = Growing { tokens: Vec::new(), sum: 0.0, budget };
    let (grown, ended) =
        grow(model, state, odds, begun, &mut Grow { cancelled, forks: Some(&mut forks), least: None })?;
    let (mut best, mut sum) = (text(state, prompt, &grown, ended), grown.sum);
    let log_probability = best.log_probability;
    forks.sort_by(|a, b| b.share.total_cmp(&a.share));
    forks.truncate(TRIES);
    for Fork { mut before, token, logarithm, .. } in forks {
        let least = sum - BEHIND;
        before.sum += logarithm;
        before.tokens.push((token, logarithm.exp()));
        if before.sum < least || !before.budget.has_more_after(model.tokens.bytes(token)) {
            continue;
        }
        state.truncate(prompt + before.tokens.len() - 1);
        model.decoder.step(state, token, odds);
        let mut how = Grow { cancelled, forks: None, least: Some(least) };
        let Some((grown, ended)) = grow(model, state, odds, before, &mut how) else {
            if cancelled() {
                return None;
            }
            continue;
        };
        let other = text(state, prompt, &grown, ended);
        let is_likelier = match grown.tokens.len() {
            tokens if tokens > best.tokens.len() + ALIKE => other.log_probability > best.log_probability,
            tokens => tokens + ALIKE >= best.tokens.len() && grown.sum > sum,
        };
        if ended && is_likelier {
            (best, sum) = (other, grown.sum);
        }
    }
    Some(Text { log_probability, ..best })
}

/// Returns what was made, with the attention behind the prompt.
fn text(state: &State, prompt: usize, grown: &Growing, ended: bool) -> Text {
    Text {
        tokens: grown.tokens.clone(),
        ended,
        log_probability: grown.sum / (grown.tokens.len() + 1) as f32,
        followed: state.followed[prompt - 1..].to_vec(),
    }
}

/// Terms of the growth of a text.
struct Grow<'g> {
    cancelled: &'g dyn Fn() -> bool,
    /// Takes the places at which another token was nearly as likely.
    forks: Option<&'g mut Vec<Fork>>,
    /// Sum of logarithms below which the text is given up.
    least: Option<f32>,
}

/// Appends the likeliest token until the text ends or its budget is used up, which makes the last value false. `None`
/// when it is cancelled or given up.
fn grow(
    model: &Whisper,
    state: &mut State,
    odds: &mut Vec<f32>,
    mut text: Growing,
    how: &mut Grow<'_>,
) -> Option<(Growing, bool)> {
    loop {
        if (how.cancelled)() || how.least.is_some_and(|least| text.sum < least) {
            return None;
        }
        let (best, other) = model.two_likeliest(odds, text.tokens.is_empty());
        let all = log_sum_exp(odds);
        let logarithm = odds[best] - all;
        let end = model.tokens.end as usize;
        if let Some(forks) = how.forks.as_deref_mut() {
            let share = (odds[other] - odds[best]).exp();
            if logarithm.exp() < SURE && share > NEAR && best != end && other != end {
                let logarithm = odds[other] - all;
                forks.push(Fork { before: text.clone(), token: other as u32, logarithm, share });
            }
        }
        text.sum += logarithm;
        if best == end {
            return Some((text, true));
        }
        text.tokens.push((best as u32, logarithm.exp()));
        if !text.budget.has_more_after(model.tokens.bytes(best as u32)) {
            return Some((text, false));
        }
        model.decoder.step(state, best as u32, odds);
    }
}

impl Whisper {
    /// Returns the two likeliest tokens. Those that never stand here are taken out of `odds`.
    fn two_likeliest(&self, odds: &mut Vec<f32>, is_first: bool) -> (usize, usize) {
        odds.truncate(self.tokens.end as usize + 1);
        let first = if is_first { &self.never_first[..] } else { &[] };
        for &token in self.never.iter().chain(first) {
            if let Some(odds) = odds.get_mut(token as usize) {
                *odds = f32::NEG_INFINITY;
            }
        }
        let best = (0..odds.len()).max_by(|&a, &b| odds[a].total_cmp(&odds[b])).unwrap_or(0);
        let other =
            (0..odds.len()).filter(|&at| at != best).max_by(|&a, &b| odds[a].total_cmp(&odds[b])).unwrap_or(best);
        (best, other)
    }
}
