#pragma once

#include "AttentionAtlasViewsModule.h"

/// Called when the plugin is loaded. In a client it sets defaults under which our data look right
/// at first, in the GUI and in scripts. ParaView's own defaults would map class numbers to a
/// continuous color scale.
///
/// - A representation colored by one of our color arrays (unsigned char, 3 components or 4 with
///   opacity, a name that ends in "Color") shows the colors themselves.
/// - Class numbers (Class, Target, Predicted, First, Second), ClassColor and TargetColor get the
///   colors of Core's ClassPalette and a legend of all classes of the model.
/// - Attention and probability get a gray scale from 0 to 1, so that images of heads are
///   comparable; scores one from blue to red, white at 0; accuracy one from white at 0 to orange at
///   1; heat one from 0 to its largest value; other arrays ParaView's old default, Cool to Warm,
///   which 6.0 has changed.
/// - A render view shows the color bar or legend of what it shows first, and flat surfaces have
///   labeled axes; its camera leaves room for them when it is reset. Colors that nothing explains,
///   such as those of a picture, have no legend.
/// - The axes of charts have titles, and words in place of the numbers of rows.
/// - A representation or chart starts with what the hint AtlasRepresentation of its source says.
///
/// An existing lookup table or property belongs to the user and is not changed, except that missing
/// classes are added. Loading a state, undo and redo are not affected.
ATTENTIONATLASVIEWS_EXPORT void InstallRepresentationDefaults();
