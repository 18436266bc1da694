//! Create, read, update and delete, once for all resources. A row is an id, an organization, a few columns lifted out
//! of the document for lookups, and the document itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use ringer_base::clock;
use ringer_base::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::db::{self, Cell};
use super::vault::place_of;
use super::{Session, from_text, to_text};

/// Identifier of a row.
pub trait RowKey: Copy + Into<Cell> + Send + Sync {
    /// Returns an id made before the insert; `None`: the database counts.
    fn fresh() -> Option<Self>;
    /// Returns the id that the database has counted; `None`: it counts none of these.
    fn from_count(number: i64) -> Option<Self>;
    /// Returns the id in column `id` of a row.
    fn of_row(row: &db::Row) -> Result<Self>;
}

impl RowKey for i64 {
    fn fresh() -> Option<i64> {
        None
    }

    fn from_count(number: i64) -> Option<i64> {
        Some(number)
    }

    fn of_row(row: &db::Row) -> Result<i64> {
        row.try_get("id").map_err(Error::internal)
    }
}

impl RowKey for Uuid {
    fn fresh() -> Option<Uuid> {
        Some(clock::new_id())
    }

    fn from_count(_: i64) -> Option<Uuid> {
        None
    }

    fn of_row(row: &db::Row) -> Result<Uuid> {
        Uuid::parse_str(row.try_get("id").map_err(Error::internal)?).map_err(Error::internal)
    }
}

/// A document with a table of its own.
pub trait Resource: Serialize + DeserializeOwned + Send + Sync {
    /// Name of the table.
    const TABLE: &'static str;
    /// Word of the resource in the error `WORD not found`.
    const WORD: &'static str;
    /// Names of columns lifted out of the document.
    const COLUMNS: &'static [&'static str];
    /// True: the document holds secrets, which are sealed.
    const SEALED: bool = false;
    /// Type of the rows' identifiers.
    type Id: RowKey;

    /// Returns the values of `COLUMNS`, in that order.
    fn cells(&self) -> Vec<Cell>;
}

/// A stored document with its row's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<R: Resource> {
    /// Identifier of the row.
    pub id: R::Id,
    /// The document as stored.
    pub doc: R,
    /// Time of its creation, milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last change, milliseconds since 1970.
    pub updated_ms: i64,
    /// User who made it, else the API key; `None`: it is not known.
    pub created_by: Option<Uuid>,
    /// User who made the last change, else the API key.
    pub updated_by: Option<Uuid>,
}

const INSERTED: [&str; 6] = ["org_id", "doc", "created_ms", "updated_ms", "created_by", "updated_by"];
const FIELDS: &str = "id, doc, created_ms, updated_ms, created_by, updated_by";
const NEWEST_FIRST: &str = "ORDER BY created_ms DESC, id DESC";

impl Session {
    /// Inserts a document and returns its id.
    pub async fn insert<R: Resource>(&mut self, doc: &R, now_ms: i64, by: Option<Uuid>) -> Result<R::Id> {
        let (organization, text) = (Cell::from(self.organization()), self.text_of(doc)?.into());
        let mut cells = vec![organization, text, now_ms.into(), now_ms.into(), by.into(), by.into()];
        cells.extend(doc.cells());
        let id = R::Id::fresh();
        cells.extend(id.map(Into::into));
        let sql = written(["insert", R::TABLE, ""], || inserting::<R>(id.is_some()));
        if let Some(id) = id {
            self.execute(&sql, &cells).await?;
            return Ok(id);
        }
        let id = self.insert_counted(&sql, &cells).await?;
        R::Id::from_count(id).ok_or_else(|| Error::internal("an id is neither made nor counted"))
    }

    /// Returns the row of `id`; `None` when this organization has none.
    pub async fn find<R: Resource>(&mut self, id: R::Id) -> Result<Option<Row<R>>> {
        let select = || format!("SELECT {FIELDS} FROM {} WHERE id = $1 AND org_id = $2", R::TABLE);
        let sql = written(["find", R::TABLE, ""], select);
        let cells = [id.into(), self.organization().into()];
        self.row(&sql, &cells).await?.map(|row| self.row_of(&row)).transpose()
    }

    /// Returns the row of `id`, else the error `WORD not found`.
    pub async fn get<R: Resource>(&mut self, id: R::Id) -> Result<Row<R>> {
        self.find(id).await?.ok_or(Error::NotFound(R::WORD))
    }

    /// True if some organization, this one or another, has the row.
    pub async fn exists_anywhere<R: Resource>(&mut self, id: R::Id) -> Result<bool> {
        let sql = format!("SELECT 1 FROM {} WHERE id = $1", R::TABLE);
        Ok(self.row(&sql, &[id.into()]).await?.is_some())
    }

    /// Returns all rows, newest first.
    pub async fn all<R: Resource>(&mut self) -> Result<Vec<Row<R>>> {
        let sql = format!("SELECT {FIELDS} FROM {} WHERE org_id = $1 {NEWEST_FIRST}", R::TABLE);
        let cells = [self.organization().into()];
        self.rows(&sql, &cells).await?.iter().map(|row| self.row_of(row)).collect()
    }

    /// Returns rows `offset .. offset + limit`, newest first.
    pub async fn slice<R: Resource>(&mut self, limit: i64, offset: i64) -> Result<Vec<Row<R>>> {
        let sql = format!("SELECT {FIELDS} FROM {} WHERE org_id = $1 {NEWEST_FIRST} LIMIT $2 OFFSET $3", R::TABLE);
        let cells = [self.organization().into(), limit.into(), offset.into()];
        self.rows(&sql, &cells).await?.iter().map(|row| self.row_of(row)).collect()
    }

    /// Returns the number of all rows.
    pub async fn count<R: Resource>(&mut self) -> Result<i64> {
        let sql = format!("SELECT COUNT(*) FROM {} WHERE org_id = $1", R::TABLE);
        let cells = [self.organization().into()];
        self.number(&sql, &cells).await
    }

    /// Returns the rows whose `column` has `value`, newest first.
    pub async fn by<R: Resource>(&mut self, column: &'static str, value: impl Into<Cell>) -> Result<Vec<Row<R>>> {
        let select = || format!("SELECT {FIELDS} FROM {} WHERE org_id = $1 AND {column} = $2 {NEWEST_FIRST}", R::TABLE);
        let sql = written(["by", R::TABLE, column], select);
        let cells = [self.organization().into(), value.into()];
        self.rows(&sql, &cells).await?.iter().map(|row| self.row_of(row)).collect()
    }

    /// Replaces the document of `id`; false when this organization has no such row.
    pub async fn update<R: Resource>(&mut self, id: R::Id, doc: &R, now_ms: i64, by: Option<Uuid>) -> Result<bool> {
        let mut cells =
            vec![id.into(), self.organization().into(), self.text_of(doc)?.into(), now_ms.into(), by.into()];
        let mut sets = String::from("doc = $3, updated_ms = $4, updated_by = $5");
        for (column, cell) in R::COLUMNS.iter().zip(doc.cells()) {
            cells.push(cell);
            sets.push_str(&format!(", {column} = ${}", cells.len()));
        }
        let sql = format!("UPDATE {} SET {sets} WHERE id = $1 AND org_id = $2", R::TABLE);
        Ok(self.execute(&sql, &cells).await? > 0)
    }

    /// Deletes the row of `id` and all rows that the schema ties to it; false when this organization has no such row.
    pub async fn delete<R: Resource>(&mut self, id: R::Id) -> Result<bool> {
        let sql = format!("DELETE FROM {} WHERE id = $1 AND org_id = $2", R::TABLE);
        let cells = [id.into(), self.organization().into()];
        Ok(self.execute(&sql, &cells).await? > 0)
    }

    /// Returns a document as it is stored.
    fn text_of<R: Resource>(&self, doc: &R) -> Result<String> {
        match R::SEALED {
            true => self.vault().write(&place_of(self.organization(), R::TABLE), doc),
            false => to_text(doc),
        }
    }

    /// Returns a row of the columns in `FIELDS`.
    pub(super) fn row_of<R: Resource>(&self, row: &db::Row) -> Result<Row<R>> {
        match R::SEALED {
            true => row_with(row, |text| self.vault().read(&place_of(self.organization(), R::TABLE), text)),
            false => row_with(row, from_text),
        }
    }

    /// Returns the one integer that a query gives; 0 without a row.
    pub async fn number(&mut self, sql: &str, cells: &[Cell]) -> Result<i64> {
        let row = self.row(sql, cells).await?;
        row.map_or(Ok(0), |row| row.try_get(0).map_err(Error::internal))
    }

    /// Returns the first column of every row, as integers.
    pub async fn numbers(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<i64>> {
        let rows = self.rows(sql, cells).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }
}

/// Returns the statement that inserts a document, with its id or without.
fn inserting<R: Resource>(with_id: bool) -> String {
    let names: Vec<&str> = INSERTED.iter().chain(R::COLUMNS).copied().chain(with_id.then_some("id")).collect();
    let marks: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", R::TABLE, names.join(", "), marks.join(", "))
}

/// Purpose of a statement: a word, the table, a column.
type Purpose = [&'static str; 3];

/// Returns the text of a statement that is run often, composed only once.
pub(super) fn written(purpose: Purpose, write: impl FnOnce() -> String) -> Arc<str> {
    static WRITTEN: RwLock<BTreeMap<Purpose, Arc<str>>> = RwLock::new(BTreeMap::new());
    if let Some(sql) = WRITTEN.read().get(&purpose) {
        return sql.clone();
    }
    let sql: Arc<str> = write().into();
    WRITTEN.write().insert(purpose, sql.clone());
    sql
}

/// Returns a row of the columns in `FIELDS`, of a table without secrets.
pub(super) fn read_row<R: Resource>(row: &db::Row) -> Result<Row<R>> {
    const { assert!(!R::SEALED, "sealed documents are read by their session") };
    row_with(row, from_text)
}

fn row_with<R: Resource>(row: &db::Row, open: impl FnOnce(&str) -> Result<R>) -> Result<Row<R>> {
    let author = |column: &str| -> Result<Option<Uuid>> {
        let text: Option<&str> = row.try_get(column).map_err(Error::internal)?;
        Ok(text.and_then(|text| Uuid::parse_str(text).ok()).filter(|id| !id.is_nil()))
    };
    let (created_by, updated_by) = (author("created_by")?, author("updated_by")?);
    Ok(Row {
        id: R::Id::of_row(row)?,
        doc: open(row.try_get("doc").map_err(Error::internal)?)?,
        created_ms: row.try_get("created_ms").map_err(Error::internal)?,
        updated_ms: row.try_get("updated_ms").map_err(Error::internal)?,
        created_by,
        updated_by,
    })
}

/// Returns the columns that [`read_row`] needs, of a table with an alias.
pub(super) fn fields_of(alias: &str) -> String {
    FIELDS.split(", ").map(|field| format!("{alias}.{field}")).collect::<Vec<_>>().join(", ")
}
