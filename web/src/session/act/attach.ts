import type { Attachment } from "./outbox.svelte";

/** A prompt takes images up to this many bytes each: the daemon takes a request of 16 MiB. */
export const IMAGE_BYTES = 5 * 1024 * 1024;

const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Reads files as images; tells of those that are none, or too large. */
export async function images(files: Iterable<File>): Promise<{ readonly taken: readonly Attachment[]; readonly refused: readonly string[] }> {
  const taken: Attachment[] = [];
  const refused: string[] = [];
  for (const file of files) {
    if (!TYPES.includes(file.type)) refused.push(`${file.name || "What was pasted"} is no PNG, JPEG, GIF or WebP image.`);
    else if (file.size > IMAGE_BYTES) refused.push(`${file.name} is larger than 5 MiB.`);
    else taken.push({ mimeType: file.type, name: file.name, data: await base64(file) });
  }
  return { taken, refused };
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("the file cannot be read"));
    reader.readAsDataURL(file);
  });
}
