//! Early dialogs of a call that was forked (RFC 3261 12.1): the one whose provisional response came last is heard.

use crate::sip::sdp::MediaPlan;

/// Most branches whose media are kept in mind.
const MOST: usize = 8;

/// The early dialogs of one call that have media, by the tags of their other sides.
#[derive(Debug, Default)]
pub(super) struct Branches {
    known: Vec<(String, MediaPlan)>,
    heard: Option<String>,
}

impl Branches {
    /// Has the branch `tag` heard, with these media.
    pub(super) fn hear(&mut self, tag: &str, plan: MediaPlan) {
        self.learn(tag, plan);
        self.heard = Some(tag.to_owned());
    }

    /// Takes a change of a branch's media. Returns true where they are heard: those of the branch that is, or of a call
    /// without branches.
    pub(super) fn learn(&mut self, tag: &str, plan: MediaPlan) -> bool {
        match self.known.iter_mut().find(|(known, _)| known == tag) {
            Some((_, known)) => *known = plan,
            None => self.known.push((tag.to_owned(), plan)),
        }
        self.known.truncate(MOST);
        self.heard.as_deref().is_none_or(|heard| heard == tag)
    }

    /// Has the branch `tag` heard again. Returns its media; `None` where it has none, or is heard already.
    pub(super) fn return_to(&mut self, tag: &str) -> Option<MediaPlan> {
        let (_, plan) = self.known.iter().find(|(known, _)| known == tag)?;
        let is_heard = self.heard.as_deref() == Some(tag);
        self.heard = Some(tag.to_owned());
        (!is_heard).then_some(*plan)
    }

    /// Forgets all branches: the call is answered.
    pub(super) fn end(&mut self) {
        *self = Branches::default();
    }
}
