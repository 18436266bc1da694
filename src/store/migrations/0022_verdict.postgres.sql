-- Runs count their results by the word of the verdict, without a look into the documents. Null: there is no verdict.
ALTER TABLE results ADD COLUMN verdict TEXT;
UPDATE results SET verdict = doc::json #>> '{body,verdict,word}' WHERE doc::json #>> '{body,verdict,word}' IS NOT NULL;
