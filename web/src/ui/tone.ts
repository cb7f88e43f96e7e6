/** What a colour says: well, at work, waiting for a person, wrong, or nothing in particular. */
export type Tone = "good" | "busy" | "wait" | "bad" | "still";
