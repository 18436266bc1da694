// Server-sent events out of the body of an answer.

/** An event: its name, its data (JSON where they are JSON, else text) and its id. */
export interface RingerEvent {
  name: string;
  data: unknown;
  id: string;
}

/** Reads events until the body ends. Whoever stops earlier closes the connection. */
export async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<RingerEvent, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [rest, name, id] = ["", "", ""];
  let lines: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const parts = rest.split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop() ?? "";
      for (const line of parts) {
        if (line === "") {
          if (lines.length > 0) yield { name: name || "message", data: parse(lines.join("\n")), id };
          [name, lines] = ["", []];
          continue;
        }
        const [field, text] = split(line);
        if (field === "event") name = text;
        else if (field === "data") lines.push(text);
        else if (field === "id") id = text;
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function split(line: string): [string, string] {
  const at = line.indexOf(":");
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1).replace(/^ /, "")];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
