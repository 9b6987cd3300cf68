#![doc = "Under construction."]
