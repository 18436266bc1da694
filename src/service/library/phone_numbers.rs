//! Phone numbers: registered, taken from the configured pool, given back.

use std::collections::HashSet;

use ringer_base::config::Trunk;
use ringer_base::error::{Error, Result};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::phone_number::{AddNumberSpec, NumberDoc, NumberRecord};
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;

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
            phone_number: row.doc.phone_number,
            purchase_date: row.doc.purchase_date,
            price: row.doc.price,
            organization_id: caller.organization.clone(),
        };
        let of_trunks: Vec<String> = self.settings.trunks.values().flat_map(|trunk| trunk.numbers.clone()).collect();
        let mut taken = HashSet::new();
        for numbers in of_trunks.chunks(AT_ONCE) {
            taken.extend(db.numbers_taken(numbers).await?);
        }
        let free = of_trunks.into_iter().filter(|number| !taken.contains(number));
        let configured = free.map(|number| record_of_trunk(number, &caller.organization));
        Ok(rows.into_iter().map(shown).chain(configured).collect())
    }

    /// Returns the trunk whose settings have a number.
    fn trunk_of(&self, number: &str) -> Option<&str> {
        let owns = |trunk: &Trunk| trunk.numbers.iter().any(|own| own == number);
        self.settings.trunks.iter().find(|(_, trunk)| owns(trunk)).map(|(name, _)| name.as_str())
    }

    /// Registers the given number, or takes a free one of the pool.
    pub async fn add_phone_number(&self, caller: &Caller, mut spec: AddNumberSpec) -> Result<NumberAdded> {
        field_rules::phone("phone_number", &mut spec.phone_number)?;
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let (phone_number, bought) = match spec.phone_number {
            Some(number) => {
                if !db.numbers_taken(std::slice::from_ref(&number)).await?.is_empty() {
                    return Err(Error::Conflict("Phone number is already registered".into()));
                }
                if let Some(trunk) = self.trunk_of(&number).filter(|_| !caller.is_admin()) {
                    // Nobody else can call from it then.
                    return Err(Error::Forbidden(format!(
                        "A number of sip.trunks.{trunk}.numbers is registered with a key of scope admin"
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
        db.insert(&doc, now, Some(caller.key_id)).await?;
        let NumberDoc { phone_number, carrier_sid, purchase_date, price } = doc;
        let organization_id = caller.organization.clone();
        db.answer(NumberAdded { phone_number, carrier_sid, organization_id, purchase_date, price }).await
    }

    /// Gives a number back that no Digital Human has.
    pub async fn release_phone_number(&self, caller: &Caller, number: &str) -> Result<NumberReleased> {
        let mut wanted = Some(number.to_owned());
        field_rules::phone("phone_number", &mut wanted).map_err(|_| Error::NotFound("Phone number"))?;
        let number = wanted.unwrap_or_default();
        let mut db = self.store.org(&caller.organization).write().await?;
        let rows = db.by::<NumberDoc>("number", number.as_str()).await?;
        let Some(row) = rows.into_iter().next() else {
            return Err(match self.trunk_of(&number) {
                Some(trunk) => Error::Conflict(format!("Phone number is set up in sip.trunks.{trunk}.numbers")),
                None => Error::NotFound("Phone number"),
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

/// Returns the record of a number of a trunk. It has no row: its id is that of no row, and the same at every start.
fn record_of_trunk(phone_number: String, organization: &str) -> NumberRecord {
    let digits: i64 = phone_number[1..].parse().unwrap_or(0);
    NumberRecord {
        id: -digits,
        created_at: Timestamp(0),
        phone_number,
        purchase_date: None,
        price: None,
        organization_id: organization.to_owned(),
    }
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
