-- Runs count their results by the word of the verdict, without a look into the documents. Null: there is no verdict.
ALTER TABLE results ADD COLUMN verdict TEXT;
UPDATE results SET verdict = json_extract(doc, '$.body.verdict.word');
