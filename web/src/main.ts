import { mount } from "svelte";
import App from "./App.svelte";
import { applyTheme, storedTheme } from "./theme/theme";
import "./styles/tokens.css";
import "./styles/base.css";

applyTheme(storedTheme());
const target = document.getElementById("app");
if (target !== null) mount(App, { target });
