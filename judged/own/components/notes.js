export const notes = ["Heron at the weir", "Ice on the canal"];
