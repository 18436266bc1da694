//! Lists of ids by which a row is limited to others: who is named has to be there, who is deleted is named no more.

use ringer_base::error::Result;
use ringer_store::{Resource, Session};

use super::Library;
use crate::Caller;

impl Library {
    /// Takes the ids of deleted rows out of a list that every `R` may have. One that empties stays: no list means all.
    pub(crate) async fn strike<R: Resource, Id: PartialEq>(
        &self,
        db: &mut Session,
        caller: &Caller,
        gone: &[Id],
        list_of: impl Fn(&mut R) -> &mut Option<Vec<Id>>,
    ) -> Result<()> {
        for mut row in db.all::<R>().await? {
            let Some(list) = list_of(&mut row.doc) else { continue };
            let before = list.len();
            list.retain(|id| !gone.contains(id));
            if list.len() < before {
                db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
            }
        }
        Ok(())
    }
}

/// Refuses ids of an `R` that the organization does not have. Those in `old`, named before, are not looked for again.
pub(crate) async fn check_named<R: Resource<Id: PartialEq>>(
    db: &mut Session,
    named: Option<&[R::Id]>,
    old: Option<&[R::Id]>,
) -> Result<()> {
    for id in named.unwrap_or_default() {
        if old.is_none_or(|old| !old.contains(id)) {
            db.get::<R>(*id).await?;
        }
    }
    Ok(())
}
