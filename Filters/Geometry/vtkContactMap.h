#pragma once

#include "AttentionAtlasGeometryModule.h"

#include <vtkRecordingAlgorithm.h>

#include <memory>
#include <string>

/// What the attention of a protein language model says of contacts, beside the model's own
/// prediction and the contacts of a structure. Input port 0: a recording of a protein, whose tokens
/// are residues. Input port 1 (optional): the transformer that was recorded; if it has a contact
/// head, as ESM-2 has, it predicts contacts from all heads. Input port 2 (optional): a structure of
/// vtkMmcifReader, also through vtkBindTokens.
///
/// With A the attention of a head between residues, without special tokens, the evidence of a
/// contact is A + A^T less its average product (Dunn et al. 2008; Rao et al. 2021). Formulas:
/// Core's ResidueContacts.h.
///
/// A bound structure has its residues where Bound Token says. Of another one, the sequence of the
/// chain is aligned with the recorded one; it is an error if fewer than half of the residues of the
/// shorter one align. If fewer of the residues that both know are the same than MinimumIdentity,
/// that is an error; if not all are, a warning. Residues without the atom are left out of all that
/// is measured. Gaps of an alignment, - and ., are no residues.
///
/// Output port 0: a vtkImageData with a point per pair of residues, x = column and y = -row. Point
/// arrays: Contact Evidence (float), Prediction (float, a probability), Distance (float, NaN
/// where it is not known), Contact (int; 1, 0, or -1 where it is not known), Query and Key (int,
/// positions in the sequence). Prediction is there with a contact head, Distance and Contact with a
/// structure. Field data: Sequence, Sequence Text, Query Token and Key Token (string, per residue),
/// Query Title and Key Title (string, Residue); with a structure Residues, Resolved Residues (int)
/// and Sequence Identity (double).
///
/// Output port 1: a vtkTable of the strongest pairs at least MinimumSeparation apart, by Prediction
/// or else Contact Evidence, as many as there are residues, or PairCount: Query, Key (int), Query
/// Token, Key Token (string), Separation (int), Range (string) and the arrays above.
///
/// Output port 2: a vtkTable of all recorded heads: Layer, Head (int), Contact Weight (double, its
/// coefficient in the contact head); with a structure Attended Pairs (int, those with attention
/// above Threshold), Contact Share (double, the share of them in contact: Vig et al. 2021),
/// Attention Share (double, the share of all attention that is in contacts), Precision L, Precision
/// L/2 and Precision L/5 (double, of the corrected attention); with sites Site Share (double, of
/// the pairs with attention above Threshold the share whose key is a site: Vig et al. 2021) and
/// Site Attention Share (double, the share of all attention that goes to sites). NaN where there is
/// nothing to divide by.
///
/// Output port 3, with a structure: a vtkTable of the precision of the L, L/2 and L/5 pairs with
/// the largest values, by range: Source (string: Contact Evidence, Prediction), Range (string: All;
/// Short, 6 to 11 apart; Medium, 12 to 23; Long), Top (string: L, L/2, L/5), Pairs, Contacts (int)
/// and Precision (double).
///
/// Output port 4, with a structure: a vtkPolyData with a line for each of the strongest pairs that
/// are resolved, from atom to atom, bent away from the center of the structure, with the cell
/// arrays of the table and MarkColor (unsigned char [3]): one color in contact, another not. Field
/// data, of each residue of the recording: Position (int, in the sequence), sequence (int, its
/// place in the sequence of its chain in the structure, from 1; 0: none), with sites Site (int, 0
/// or 1); and chain (string, of all of them; empty if the structure is bound).
///
/// Output port 5: the table of heads as a vtkImageData with a point per head, x = head, y = -row of
/// the layer among those recorded; point arrays as in the table (Attended Pairs double). The
/// scalars are Attention Share, or else Site Attention Share, or Contact Weight. Field data: Query
/// Token and Key Token (string): the names of layers and heads.
///
/// With sites all outputs have the field data Residues and Site Residues (int, how many there are).
///
/// On several ranks each computes all and has its part of the images, the first one the other
/// outputs. The atoms of a structure that is distributed come in the order of ranks, by which the
/// first chain and the first of several locations are chosen. Canceling leaves all empty.
class ATTENTIONATLASGEOMETRY_EXPORT vtkContactMap : public vtkRecordingAlgorithm
{
public:
  static vtkContactMap* New();
  vtkTypeMacro(vtkContactMap, vtkRecordingAlgorithm);

  enum ContactAtomType
  {
    C_BETA = 0,
    C_ALPHA = 1
  };

  /// Connects the transformer, and the structure.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }
  void SetStructureConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(2, data); }

  /// The index of the sequence, from 0. Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// The layer whose attention is shown, from 0; -1: the mean over all recorded layers. Default:
  /// -1.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The head of the layer, from 0; -1: the mean over all heads. Each is corrected before. Default:
  /// -1.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// The chain of a structure that is not bound; null or empty: the first one. Default: none.
  vtkSetStdStringFromCharMacro(Chain);
  vtkGetCharFromStdStringMacro(Chain);

  /// The atom of a residue: C_BETA, of glycine C-alpha, or C_ALPHA. Default: C_BETA.
  vtkSetClampMacro(ContactAtom, int, C_BETA, C_ALPHA);
  vtkGetMacro(ContactAtom, int);

  /// Residues whose atoms are closer than this are in contact, in the unit of the structure, above
  /// 0. Default: 8, of Angstrom.
  vtkSetMacro(ContactDistance, double);
  vtkGetMacro(ContactDistance, double);

  /// How far apart in the sequence two residues in contact are at least, from 1. Default: 6.
  vtkSetMacro(MinimumSeparation, int);
  vtkGetMacro(MinimumSeparation, int);

  /// The attention above which a pair counts for Contact Share, from 0 to 1. Default: 0.3.
  vtkSetMacro(Threshold, double);
  vtkGetMacro(Threshold, double);

  /// The rows of the table of pairs, and lines; 0: as many as there are residues. Default: 0.
  vtkSetMacro(PairCount, int);
  vtkGetMacro(PairCount, int);

  /// Residues whose attention is measured, such as a binding site: their numbers in the sequence of
  /// residues, from 1, and ranges, such as "12 45-48". Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(Sites);
  vtkGetCharFromStdStringMacro(Sites);

  /// A point array of numbers of the structure; residues with an atom where it is not 0 are sites,
  /// too. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(SiteArray);
  vtkGetCharFromStdStringMacro(SiteArray);

  /// How far the middle of a line is from the straight one, as a part of its length, from 0 to 1.
  /// Default: 0.3.
  vtkSetMacro(Bend, double);
  vtkGetMacro(Bend, double);

  /// The share of residues that the structure and the recording must have in common, from 0 to 1.
  /// Default: 0.9.
  vtkSetMacro(MinimumIdentity, double);
  vtkGetMacro(MinimumIdentity, double);

  /// The first and last sequence, -1 and the last recorded layer, -1 and the last head as of the
  /// last UpdateInformation; 0, 0 without a recording.
  vtkGetVector2Macro(SequenceRange, int);
  vtkGetVector2Macro(LayerRange, int);
  vtkGetVector2Macro(HeadRange, int);

protected:
  vtkContactMap();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Found;
  struct Memory;

  void CheckOptions() const;
  Found Find(const AttentionAtlas::Task& task);
  void PlaceStructure(Found& found, const AttentionAtlas::Task& task);

  int Sequence = 0;
  int Layer = -1;
  int Head = -1;
  std::string Chain;
  int ContactAtom = C_BETA;
  double ContactDistance = 8;
  int MinimumSeparation = 6;
  double Threshold = 0.3;
  int PairCount = 0;
  std::string Sites;
  std::string SiteArray;
  double Bend = 0.3;
  double MinimumIdentity = 0.9;
  int SequenceRange[2] = { 0, 0 };
  int LayerRange[2] = { 0, 0 };
  int HeadRange[2] = { 0, 0 };
  std::shared_ptr<Memory> Last;
};
