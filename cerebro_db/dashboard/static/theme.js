// Light or dark, before anything is painted: as the system has it, unless somebody chose.
const chosen = localStorage.getItem('theme')
if (chosen) document.documentElement.dataset.theme = chosen
