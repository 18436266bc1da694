//! Phone numbers: registered, taken from the configured pool, given back.

use std::collections::{HashMap, HashSet};

use ringer_base::config::carrier;
use ringer_base::error::{Error, Result};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::phone_number::{AddNumberSpec, NumberDoc, NumberRecord};
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session, TrunkNumber};
use schemars::JsonSchema;
use serde::Serialize;

use super::limits::limits_in_force;
use super::{Library, field_rules};
use crate::Caller;

/// Numbers that are looked up at once.
const AT_ONCE: usize = 200;

/// Response to adding a number.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NumberAdded {
    /// Phone number in E.164 form.
    pub phone_number: String,
    /// Id at the carrier; empty when it is not known.
    pub carrier_sid: String,
    /// Organization that holds the number.
    pub organization_id: String,
    /// `YYYY-MM-DD`; null for a number that was bought elsewhere.
    pub purchase_date: Option<String>,
    /// Price a month in the smallest unit of the currency; null when it is not known.
    pub price: Option<i64>,
    /// Trunk in the settings that carries the number; null: none does.
    pub trunk: Option<String>,
    /// Uses that the number does not have, and the reason; empty when a trunk carries it.
    pub warnings: Vec<String>,
}

/// Response to giving a number back.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NumberReleased {
    /// Phone number in E.164 form.
    pub phone_number: String,
    /// Always true: failures are errors.
    pub released: bool,
}

impl Library {
    /// Returns the numbers of an organization, newest first; behind them the numbers of trunks that no organization has
    /// registered.
    pub async fn phone_numbers(&self, caller: &Caller) -> Result<Vec<NumberRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let rows = db.all().await?;
        let shown = |row: Row<NumberDoc>| NumberRecord {
            id: row.id,
            created_at: Timestamp(row.created_ms),
            purchase_date: row.doc.purchase_date,
            price: row.doc.price,
            organization_id: caller.organization.clone(),
            trunk: self.carrier_of(&row.doc.phone_number),
            phone_number: row.doc.phone_number,
        };
        let of_trunks = self.listed_numbers();
        let mut taken = HashSet::new();
        for numbers in of_trunks.chunks(AT_ONCE) {
            taken.extend(db.numbers_taken(numbers).await?);
        }
        drop(db);
        let free: Vec<String> = of_trunks.into_iter().filter(|number| !taken.contains(number)).collect();
        let seen = self.seen_numbers(&free).await?;
        let configured = free.into_iter().filter_map(|number| {
            let TrunkNumber { id, created_ms } = *seen.get(&number)?;
            Some(NumberRecord {
                id,
                created_at: Timestamp(created_ms),
                purchase_date: None,
                price: None,
                organization_id: caller.organization.clone(),
                trunk: self.carrier_of(&number),
                phone_number: number,
            })
        });
        Ok(rows.into_iter().map(shown).chain(configured).collect())
    }

    /// Notes the numbers of the trunks in the settings, with the time, as far as they were never seen.
    pub async fn note_trunk_numbers(&self) -> Result<()> {
        self.seen_numbers(&self.listed_numbers()).await.map(drop)
    }

    /// Returns when these numbers of trunks were first seen; those that never were are noted now.
    async fn seen_numbers(&self, numbers: &[String]) -> Result<HashMap<String, TrunkNumber>> {
        let seen = self.store.org("").read().await?.trunk_numbers(numbers).await?;
        let missing: Vec<String> = numbers.iter().filter(|number| !seen.contains_key(*number)).cloned().collect();
        if missing.is_empty() {
            return Ok(seen);
        }
        let mut db = self.store.org("").write().await?;
        db.note_trunk_numbers(&missing, self.clock.now_ms()).await?;
        let seen = db.trunk_numbers(numbers).await?;
        db.commit().await?;
        Ok(seen)
    }

    /// Returns the numbers that the trunks of the settings list.
    fn listed_numbers(&self) -> Vec<String> {
        self.settings.trunks.values().flat_map(|trunk| trunk.numbers.clone()).collect()
    }

    /// Returns the name of the trunk that carries a number.
    fn carrier_of(&self, number: &str) -> Option<String> {
        carrier(&self.settings.trunks, number).map(|(name, _)| name.to_owned())
    }

    /// Returns the setting by which a trunk carries a number.
    fn setting_of(&self, number: &str) -> Option<String> {
        let (name, trunk) = carrier(&self.settings.trunks, number)?;
        Some(format!("sip.trunks.{name}.{}", if trunk.lists(number) { "numbers" } else { "carries" }))
    }

    /// Registers the given number, or takes a free one of the pool.
    pub async fn add_phone_number(&self, caller: &Caller, mut spec: AddNumberSpec) -> Result<NumberAdded> {
        field_rules::phone("phone_number", &mut spec.phone_number)?;
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        if let Some(most) = limits_in_force(&self.settings, &mut db).await?.phone_numbers
            && db.all::<NumberDoc>().await?.len() >= most as usize
        {
            return Err(Error::Conflict(format!("The workspace's limit of {most} phone numbers is reached")));
        }
        let (phone_number, bought) = match spec.phone_number {
            Some(number) => {
                if !db.numbers_taken(std::slice::from_ref(&number)).await?.is_empty() {
                    return Err(Error::Conflict("Phone number is already registered".into()));
                }
                if let Some(setting) = self.setting_of(&number).filter(|_| !caller.is_admin()) {
                    // Nobody else can call from it then.
                    return Err(Error::Forbidden(format!(
                        "A number of {setting} is registered with a key of scope admin"
                    )));
                }
                if is_elsewhere(&mut db, &number).await? {
                    return Err(Error::Conflict("Phone number is in use by another organization".into()));
                }
                (number, None)
            }
            None => {
                let pool = &self.settings.number_pool;
                let taken = db.numbers_taken(pool).await?;
                let area = spec.area_code.as_deref().unwrap_or_default();
                let mut free = None;
                for number in pool.iter().filter(|number| !taken.contains(number) && lies_in(number, area)) {
                    if !is_elsewhere(&mut db, number).await? {
                        free = Some(number.clone());
                        break;
                    }
                }
                let free = free.ok_or_else(|| Error::Conflict("No phone number available".into()))?;
                let today = Timestamp(now).to_string().chars().take(10).collect();
                (free, Some((today, self.settings.number_price)))
            }
        };
        let (purchase_date, price) = bought.unzip();
        let doc = NumberDoc { phone_number, carrier_sid: String::new(), purchase_date, price };
        db.insert(&doc, now, Some(caller.author())).await?;
        let NumberDoc { phone_number, carrier_sid, purchase_date, price } = doc;
        let organization_id = caller.organization.clone();
        let trunk = self.carrier_of(&phone_number);
        let warnings = trunk.is_none().then(|| warn_of_no_trunk(&phone_number)).into_iter().collect();
        let added = NumberAdded { phone_number, carrier_sid, organization_id, purchase_date, price, trunk, warnings };
        db.answer(added).await
    }

    /// Gives a number back that no Digital Human has.
    pub async fn release_phone_number(&self, caller: &Caller, number: &str) -> Result<NumberReleased> {
        let mut wanted = Some(number.to_owned());
        field_rules::phone("phone_number", &mut wanted).map_err(|_| Error::NotFound("Phone number"))?;
        let number = wanted.unwrap_or_default();
        let mut db = self.store.org(&caller.organization).write().await?;
        let rows = db.by::<NumberDoc>("number", number.as_str()).await?;
        let Some(row) = rows.into_iter().next() else {
            return Err(match carrier(&self.settings.trunks, &number) {
                Some((name, trunk)) if trunk.lists(&number) => {
                    Error::Conflict(format!("Phone number is set up in sip.trunks.{name}.numbers"))
                }
                _ => Error::NotFound("Phone number"),
            });
        };
        let has = |spec: &DigitalHumanSpec| {
            [&spec.phone_number, &spec.outbound_text_number].into_iter().flatten().any(|own| *own == number)
        };
        if db.all::<DigitalHumanSpec>().await?.iter().any(|human| has(&human.doc)) {
            return Err(Error::Conflict("Phone number is in use".into()));
        }
        db.delete::<NumberDoc>(row.id).await?;
        db.commit().await?;
        Ok(NumberReleased { phone_number: number, released: true })
    }
}

/// True if a Digital Human of another organization has a number, or somebody listens on it.
async fn is_elsewhere(db: &mut Session, number: &str) -> Result<bool> {
    let listening = [db.leg_holder(number).await?, db.always_on(number).await?];
    let is_listening = listening.into_iter().flatten().any(|(organization, _)| organization != db.organization());
    Ok(is_listening || db.has_foreign_human(number).await?)
}

/// Returns the warning about a number that no trunk carries.
fn warn_of_no_trunk(number: &str) -> String {
    format!(
        "No trunk carries {number}: calls cannot be made from it, and none comes in to it by a trunk. A trunk carries the numbers \
         of sip.trunks.NAME.numbers, and those that begin as sip.trunks.NAME.carries"
    )
}

/// True if a number has an area code after its country code of 1 to 3 digits (ITU-T E.164 6.2.1).
fn lies_in(number: &str, area: &str) -> bool {
    let digits = number.trim_start_matches('+');
    let from = if digits.starts_with('1') { 1..=1 } else { 1..=3 };
    area.is_empty() || from.into_iter().any(|country| digits.get(country..).is_some_and(|rest| rest.starts_with(area)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_codes_follow_the_country() {
        for (number, area, expect) in [
            ("+14155550100", "415", true),
            ("+14155550100", "", true),
            ("+12124155550", "415", false),
            ("+493012345678", "30", true),
            ("+493012345678", "12", false),
        ] {
            assert_eq!(lies_in(number, area), expect, "{number} {area}");
        }
    }
}
