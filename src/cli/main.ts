import { tour } from './tour.js';

await tour((text) => console.log(text));
