//! A table as a Parquet file (format version 2): one row group, columns that may be null, nothing compressed.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

use super::columns::{Kind, Table};

/// Returns the file.
///
/// # Errors
/// A name or value that the format does not take.
pub(super) fn write(table: &Table) -> Result<Vec<u8>> {
    let kinds: Vec<Kind> = (0..table.columns.len()).map(|at| table.kind_of(at)).collect();
    let fields: Result<Vec<TypePtr>> =
        table.columns.iter().zip(&kinds).map(|(column, kind)| field(&column.name, *kind)).collect();
    let schema = Type::group_type_builder("schema").with_fields(fields?).build()?;
    let properties = WriterProperties::builder().set_created_by(format!("ringer {}", env!("CARGO_PKG_VERSION")));
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build()))?;
    let mut group = file.next_row_group()?;
    for (at, kind) in kinds.iter().enumerate() {
        let cells = || table.rows.iter().map(|row| &row[at]);
        match kind {
            Kind::Integer => add::<Int64Type>(&mut group, cells().map(Value::as_i64))?,
            Kind::Number => add::<DoubleType>(&mut group, cells().map(Value::as_f64))?,
            Kind::Truth => add::<BoolType>(&mut group, cells().map(Value::as_bool))?,
            Kind::Text | Kind::Any => add::<ByteArrayType>(&mut group, cells().map(text))?,
        }
    }
    group.close()?;
    file.into_inner()
}

fn field(name: &str, kind: Kind) -> Result<TypePtr> {
    let physical = match kind {
        Kind::Integer => Physical::INT64,
        Kind::Number => Physical::DOUBLE,
        Kind::Truth => Physical::BOOLEAN,
        Kind::Text | Kind::Any => Physical::BYTE_ARRAY,
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    let builder = match physical {
        // Older readers know the converted type only.
        Physical::BYTE_ARRAY => {
            builder.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8)
        }
        _ => builder,
    };
    builder.build().map(Arc::new)
}

/// Returns the text of a cell: a value of another type as JSON.
fn text(value: &Value) -> Option<ByteArray> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_str().into()),
        other => Some(other.to_string().as_str().into()),
    }
}

/// Writes the next column: its values, and for each row whether it has one.
fn add<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}
